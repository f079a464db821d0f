# core/json_reader.hpp is for the .cpp files of every room; no public header includes it.
target_link_libraries(sluice_core PUBLIC nlohmann_json::nlohmann_json)
