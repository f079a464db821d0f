# The editor that fails on demand, and the chain's fixture, are the graph room's.
target_sources(test_graph_onnx PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/graph/fixture.cpp")
