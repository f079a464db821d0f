# counted.cpp replaces operator new and pthread_mutex_lock for the whole binary: exported, so that shared libraries meet
# them too.
set_target_properties(test_dispatch PROPERTIES ENABLE_EXPORTS ON)
target_link_libraries(test_dispatch PRIVATE ${CMAKE_DL_LIBS})
