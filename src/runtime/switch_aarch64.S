/* The bare switch of stacks on AArch64, AAPCS64: x19-x30 and the low halves of v8-v15 travel, and the
 * floating-point control register.
 * SPDX-License-Identifier: MIT */
    .text
    .globl  wr_switch
    .hidden wr_switch
    .type   wr_switch, %function
    .p2align 4
wr_switch:                          /* (x0: void **from, x1: void *to) */
    .cfi_startproc
    hint    #34                     /* bti c */
    sub     sp, sp, #176
    stp     x19, x20, [sp, #0]
    stp     x21, x22, [sp, #16]
    stp     x23, x24, [sp, #32]
    stp     x25, x26, [sp, #48]
    stp     x27, x28, [sp, #64]
    stp     x29, x30, [sp, #80]
    stp     d8, d9, [sp, #96]
    stp     d10, d11, [sp, #112]
    stp     d12, d13, [sp, #128]
    stp     d14, d15, [sp, #144]
    mrs     x9, fpcr
    str     x9, [sp, #160]
    mov     x9, sp
    str     x9, [x0]
    mov     sp, x1
    ldr     x9, [sp, #160]
    msr     fpcr, x9
    ldp     d14, d15, [sp, #144]
    ldp     d12, d13, [sp, #128]
    ldp     d10, d11, [sp, #112]
    ldp     d8, d9, [sp, #96]
    ldp     x29, x30, [sp, #80]
    ldp     x27, x28, [sp, #64]
    ldp     x25, x26, [sp, #48]
    ldp     x23, x24, [sp, #32]
    ldp     x21, x22, [sp, #16]
    ldp     x19, x20, [sp, #0]
    add     sp, sp, #176
    ret
    .cfi_endproc
    .size   wr_switch, . - wr_switch

/* Where a fresh stack begins: x19 holds the entry, x20 its argument (see wr_switch_prepare). */
    .globl  wr_switch_start
    .hidden wr_switch_start
    .type   wr_switch_start, %function
    .p2align 4
wr_switch_start:
    .cfi_startproc
    .cfi_undefined x30              /* backtraces end here */
    hint    #34
    mov     x0, x20
    blr     x19
    brk     #1                      /* entries never return */
    .cfi_endproc
    .size   wr_switch_start, . - wr_switch_start

    .section .note.GNU-stack, "", %progbits

/* Indirect branches land on bti. Return addresses are not signed here: the first one of a stack is
 * written by C code. */
    .section .note.gnu.property, "a"
    .p2align 3
    .word   4                       /* length of the name                        */
    .word   16                      /* length of what follows it                 */
    .word   5                       /* NT_GNU_PROPERTY_TYPE_0                    */
    .asciz  "GNU"
    .word   0xc0000000              /* GNU_PROPERTY_AARCH64_FEATURE_1_AND        */
    .word   4
    .word   1                       /* BTI; PAC would be 2                       */
    .word   0
