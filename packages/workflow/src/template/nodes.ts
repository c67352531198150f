import type { FunctionName } from './function-names.ts'

/** The syntax tree. `at` is the offset in the source. */
export type Node = TextNode | ActionNode | BranchNode | RangeNode | JumpNode

export interface TextNode {
  readonly kind: 'text'
  readonly text: string
  readonly at: number
}

export interface ActionNode {
  readonly kind: 'action'
  readonly pipe: Pipe
  readonly at: number
}

export interface BranchNode {
  readonly kind: 'if' | 'with'
  readonly pipe: Pipe
  readonly body: readonly Node[]
  readonly otherwise: readonly Node[]
  readonly at: number
}

export interface RangeNode {
  readonly kind: 'range'
  readonly pipe: Pipe
  readonly body: readonly Node[]
  readonly otherwise: readonly Node[]
  readonly at: number
}

export interface JumpNode {
  readonly kind: 'break' | 'continue'
  readonly at: number
}

export interface Pipe {
  readonly kind: 'pipe'
  /** Names without `$`, with the slots that hold their values. */
  readonly variables: readonly Variable[]
  readonly assigns: boolean
  readonly commands: readonly Command[]
  readonly at: number
}

export interface Variable {
  readonly name: string
  readonly slot: number
}

export interface Command {
  readonly operands: readonly [Operand, ...Operand[]]
  readonly at: number
}

export type Operand = LiteralOperand | FunctionOperand | DotOperand | VariableOperand | ChainOperand

export interface LiteralOperand {
  readonly kind: 'literal'
  readonly value: null | boolean | number | string
  readonly at: number
}

export interface FunctionOperand {
  readonly kind: 'function'
  readonly name: FunctionName
  readonly at: number
}

/** `.` or `.a.b` */
export interface DotOperand {
  readonly kind: 'dot'
  readonly fields: readonly string[]
  readonly at: number
}

/** `$` (slot 0), `$x` or `$x.a.b` */
export interface VariableOperand {
  readonly kind: 'variable'
  readonly slot: number
  readonly name: string
  readonly fields: readonly string[]
  readonly at: number
}

/** `(…)` or `(…).a.b`; the head may be a function without arguments. */
export interface ChainOperand {
  readonly kind: 'chain'
  readonly head: Pipe | FunctionOperand
  readonly fields: readonly string[]
  readonly at: number
}
