# Builds the wheel in DIR from a copy of python/ (FILES), with the library in DIR/library. The copy is made anew, but
# the extension module is compiled again only if a header or what binding.py makes of them changed.

set(source ${DIR}/source)
file(GLOB old ${DIR}/*.whl ${source}/*.py ${source}/finetti ${source}/build/bdist* ${source}/build/lib/finetti/*.py*
     ${source}/build/lib/finetti/__pycache__)
file(REMOVE_RECURSE ${old} ${source}/finetti.egg-info)
foreach(file IN LISTS FILES)
  file(RELATIVE_PATH name ${SRC}/python ${file})
  configure_file(${file} ${source}/${name} COPYONLY)
endforeach()
foreach(name IN ITEMS README.md LICENSE)
  if(NOT EXISTS ${SRC}/python/${name})
    configure_file(${SRC}/${name} ${source}/${name} COPYONLY)
  endif()
endforeach()

execute_process(
  COMMAND ${CMAKE_COMMAND} -E env CC=${CC} FINETTI_INCLUDE=${SRC}/include FINETTI_LIBRARY=${DIR}/library
          ${PYTHON} setup.py -q build --build-lib build/lib bdist_wheel --dist-dir ${DIR}
  WORKING_DIRECTORY ${source} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result)
  message(FATAL_ERROR "${output}\nsetup.py ended with ${result}")
endif()
