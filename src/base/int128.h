/* 128-bit integers: products of two 64-bit numbers, exact.  (A compiler extension; gcc and clang have it.) */
#ifndef STEALSCOPE_BASE_INT128_H
#define STEALSCOPE_BASE_INT128_H

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

#endif
