/* SANITIZED: 1 under AddressSanitizer or ThreadSanitizer, of gcc or clang, where all is several times slower.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_SANITIZED_H
#define WR_TESTS_SANITIZED_H

#ifndef __has_feature
#define __has_feature(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || \
    __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif
