/* The bare switch of stacks on x86-64, System V ABI.
 *
 * What the ABI lets a callee change is dead at a call, so only the callee-saved registers and the two
 * floating-point control words travel. It ends with a plain `ret`: all suspended fibers were left from
 * the same call, so the return predictor is right about this one, and, being balanced, about most of
 * the returns that follow. (An indirect jump makes all of those miss.)
 * SPDX-License-Identifier: MIT */
    .text
    .globl  wr_switch
    .hidden wr_switch
    .type   wr_switch, @function
    .p2align 4
wr_switch:                          /* (rdi: void **from, rsi: void *to) */
    .cfi_startproc
    endbr64
    pushq   %rbp
    pushq   %rbx
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    subq    $8, %rsp
    stmxcsr (%rsp)
    fnstcw  4(%rsp)
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    ldmxcsr (%rsp)
    fldcw   4(%rsp)
    addq    $8, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    retq
    .cfi_endproc
    .size   wr_switch, . - wr_switch

/* Where a fresh stack begins: r12 holds the entry, r13 its argument (see wr_switch_prepare). */
    .globl  wr_switch_start
    .hidden wr_switch_start
    .type   wr_switch_start, @function
    .p2align 4
wr_switch_start:
    .cfi_startproc
    .cfi_undefined rip              /* backtraces end here */
    endbr64
    movq    %r13, %rdi
    callq   *%r12
    ud2                             /* entries never return */
    .cfi_endproc
    .size   wr_switch_start, . - wr_switch_start

    .section .note.GNU-stack, "", @progbits

/* Indirect branches land on endbr64 (IBT). A shadow stack would have to be switched as well, so that
 * is not claimed, and no program that contains this file has one. */
    .section .note.gnu.property, "a"
    .p2align 3
    .long   4                       /* length of the name                        */
    .long   16                      /* length of what follows it                 */
    .long   5                       /* NT_GNU_PROPERTY_TYPE_0                    */
    .asciz  "GNU"
    .long   0xc0000002              /* GNU_PROPERTY_X86_FEATURE_1_AND            */
    .long   4
    .long   1                       /* IBT; SHSTK would be 2                     */
    .long   0
