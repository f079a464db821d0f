# Debian's libonnx-dev: the same flags as the library was built with.
target_compile_definitions(sluice_${name} PUBLIC ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(sluice_${name} PUBLIC "${SLUICE_LIBONNX}" "${SLUICE_LIBONNX_PROTO}" "${SLUICE_LIBPROTOBUF}")
