# Store entries carry their provenance as JSON.
target_link_libraries(sluice_jit PRIVATE nlohmann_json::nlohmann_json)
