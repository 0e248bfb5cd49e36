# SPDX-License-Identifier: MIT
# The version of the headers in a folder.
function(read_faiss_version include_dir result)
  file(STRINGS ${include_dir}/faiss/Index.h lines REGEX
    "#define FAISS_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  string(JOIN "." version ${numbers})
  set(${result} ${version} PARENT_SCOPE)
endfunction()

# add_faiss_library(FILE INCLUDE_DIR): the target faiss for a shared library that
# no package configuration describes, such as libfaiss.so in a wheel.
#
# OpenMP, BLAS and LAPACK are those that the library itself uses: a wheel has
# copies of its own, in a folder beside the package.
function(add_faiss_library file include_dir)
  get_filename_component(folder ${file} DIRECTORY)
  set(copies ${folder}/../faiss_cpu.libs)
  file(GLOB runtime ${copies}/libgomp* ${copies}/libopenblas*)
  if(NOT runtime)
    find_package(OpenMP REQUIRED)
    find_package(LAPACK REQUIRED)
    set(runtime OpenMP::OpenMP_CXX LAPACK::LAPACK)
  endif()
  add_library(faiss SHARED IMPORTED GLOBAL)
  set_target_properties(faiss PROPERTIES
    IMPORTED_LOCATION ${file}
    INTERFACE_INCLUDE_DIRECTORIES ${include_dir}
    INTERFACE_LINK_LIBRARIES "${runtime}"
    # an RPATH: a RUNPATH would not help those libraries to find their own
    INTERFACE_LINK_OPTIONS "LINKER:--disable-new-dtags")
endfunction()
