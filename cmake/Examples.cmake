# examples/<name>.c -> build/examples/<name>, linked as a program outside the tree would be. Where
# there is an examples/<name>.expected, a test compares what the example prints with it.

file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
file(GLOB example_answers CONFIGURE_DEPENDS examples/*.expected)
add_custom_target(examples)
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE finetti_shared m)
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  add_dependencies(examples example_${name})
  set(answer ${PROJECT_SOURCE_DIR}/examples/${name}.expected)
  if(BUILD_TESTING AND answer IN_LIST example_answers)
    add_test(NAME example_${name}
      COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:example_${name}> -D EXPECTED=${answer}
              -D ACTUAL=${PROJECT_BINARY_DIR}/examples/${name}.actual
              -P ${PROJECT_SOURCE_DIR}/cmake/run_example.cmake
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    set_tests_properties(example_${name} PROPERTIES LABELS lean TIMEOUT 300)
  endif()
endforeach()

# docs/commands.md is what tools/commands.c prints.
add_executable(commands_reference tools/commands.c)
target_link_libraries(commands_reference PRIVATE finetti_shared)
set_target_properties(commands_reference PROPERTIES
  OUTPUT_NAME commands RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tools)
add_dependencies(examples commands_reference)
if(BUILD_TESTING)
  add_test(NAME commands_reference
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:commands_reference>
            -D EXPECTED=${PROJECT_SOURCE_DIR}/docs/commands.md -D ACTUAL=${PROJECT_BINARY_DIR}/tools/commands.md
            -P ${PROJECT_SOURCE_DIR}/cmake/run_example.cmake)
  set_tests_properties(commands_reference PROPERTIES LABELS lean TIMEOUT 60)
endif()
