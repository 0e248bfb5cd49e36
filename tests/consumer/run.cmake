# SPDX-License-Identifier: MIT
# Installs the build into a fresh prefix, then configures, builds and runs a
# project that depends on it, and that is refused with another FAISS.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)

# faiss_ext.h includes all other headers
set(include_dir ${WORK_DIR}/prefix/include)
file(GLOB_RECURSE headers RELATIVE ${include_dir} ${include_dir}/faiss_ext/*.h)
list(REMOVE_ITEM headers faiss_ext/faiss_ext.h)
file(STRINGS ${include_dir}/faiss_ext/faiss_ext.h included REGEX "^#include")
list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>")
list(SORT headers)
if(NOT included STREQUAL headers)
  string(REPLACE ";" "\n" headers "${headers}")
  message(FATAL_ERROR "faiss_ext/faiss_ext.h must have these lines:\n${headers}")
endif()

run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)

# another patch of the same minor version
string(REGEX REPLACE "[.]" ";" numbers ${FAISS_VERSION})
list(GET numbers 0 major)
list(GET numbers 1 minor)
file(WRITE ${WORK_DIR}/other/faiss/Index.h
  "#define FAISS_VERSION_MAJOR ${major}\n"
  "#define FAISS_VERSION_MINOR ${minor}\n"
  "#define FAISS_VERSION_PATCH 99\n")
file(WRITE ${WORK_DIR}/other/faiss.cmake
  "add_library(faiss INTERFACE IMPORTED)\n"
  "target_include_directories(faiss INTERFACE ${WORK_DIR}/other)\n")
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/refused
    -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -DCMAKE_PROJECT_INCLUDE=${WORK_DIR}/other/faiss.cmake
  OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE result)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(result EQUAL 0 OR NOT said MATCHES "are of FAISS ${major}.${minor}.99")
  message(FATAL_ERROR "headers of another FAISS were not refused: ${said}")
endif()
