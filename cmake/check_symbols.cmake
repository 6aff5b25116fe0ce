# No name escapes: SHARED defines only fin_..., STATIC only fin_... and fini_...; and SHARED defines what tests/abi.txt
# (LIST) says, so that nothing comes or goes by oversight.

function(check file pattern)
  execute_process(COMMAND ${NM} ${ARGN} --defined-only --extern-only --format=posix ${file}
                  OUTPUT_VARIABLE text RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${NM} ${file} failed")
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${text}")
  set(count 0)
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([A-Za-z_0-9.]+) ([A-Z]) ")
      continue() # the name of an archive member
    endif()
    set(name ${CMAKE_MATCH_1})
    if(name MATCHES "^\\.")
      continue() # made by the compiler, for OpenMP
    endif()
    math(EXPR count "${count} + 1")
    list(APPEND names ${name})
    if(NOT name MATCHES "${pattern}")
      message(SEND_ERROR "${file} defines ${name}: make it static, or give it a prefix")
    endif()
  endforeach()
  if(count EQUAL 0)
    message(FATAL_ERROR "${file} defines nothing")
  endif()
  set(names ${names} PARENT_SCOPE)
endfunction()

check(${SHARED} "^fin_" --dynamic)
file(STRINGS ${LIST} kept REGEX "^fin_")
set(new ${names})
list(REMOVE_ITEM new ${kept})
set(gone ${kept})
list(REMOVE_ITEM gone ${names})
foreach(name IN LISTS new)
  message(SEND_ERROR "${name} is exported and not in tests/abi.txt: if the tool, Python or an example needs it, add a line "
          "there and a word to CHANGELOG.md; else make it internal (fini_)")
endforeach()
foreach(name IN LISTS gone)
  message(SEND_ERROR "${name} of tests/abi.txt is no longer exported, and programs that call it will not start: bring it "
          "back; or remove the line, say so in CHANGELOG.md, and count up FIN_VERSION_MINOR if a release had it")
endforeach()
check(${STATIC} "^fini?_")
