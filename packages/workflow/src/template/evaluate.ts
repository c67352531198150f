import type { JsonObject } from '@thv/kernel/json'
import type { FunctionName } from './function-names.ts'
import { FUNCTIONS } from './functions.ts'
import { Budget } from './limits.ts'
import type { Command, Node, Operand, Pipe, RangeNode } from './nodes.ts'
import type { Syntax } from './parser.ts'
import { TemplateError } from './template-error.ts'
import { isJsonObject, isList, isTrue, kindOf, memberOf, sortedKeys, textOf, type Value } from './value.ts'

/** Renders a parsed template to text. */
export function renderText(syntax: Syntax, root: JsonObject): string {
  const state = new Rendering(syntax, root)
  state.walk(syntax.nodes, root)
  return state.text
}

/** The value of a template that is one action. */
export function evaluateAction(syntax: Syntax, pipe: Pipe, root: JsonObject): Value {
  return new Rendering(syntax, root).pipe(pipe, root)
}

type Jump = 'break' | 'continue' | undefined

class Rendering {
  text = ''
  readonly #slots: Value[]
  readonly #budget = new Budget()

  constructor({ slots }: Syntax, root: JsonObject) {
    this.#slots = new Array<Value>(slots)
    this.#slots[0] = root
  }

  walk(nodes: readonly Node[], dot: Value): Jump {
    for (const node of nodes) {
      this.#budget.step(node.at)
      const jump = this.#node(node, dot)
      if (jump) return jump
    }
    return undefined
  }

  #node(node: Node, dot: Value): Jump {
    switch (node.kind) {
      case 'text':
        this.text += this.#budget.write(node.text, node.at)
        return undefined
      case 'action': {
        const value = this.pipe(node.pipe, dot)
        if (node.pipe.variables.length === 0) this.text += this.#budget.write(this.#shown(value, node.pipe), node.at)
        return undefined
      }
      case 'if':
      case 'with': {
        const value = this.pipe(node.pipe, dot)
        if (!isTrue(value)) return this.walk(node.otherwise, dot)
        return this.walk(node.body, node.kind === 'with' ? value : dot)
      }
      case 'range':
        return this.#range(node, dot)
      default:
        return node.kind
    }
  }

  #shown(value: Value, pipe: Pipe): string {
    if (value === undefined || value === null) {
      const path = pathText(pipe)
      throw new TemplateError('no_value', path ? `${path} has no value` : 'the action has no value', pipe.at)
    }
    return textOf(value, this.#budget, pipe.at)
  }

  #range(node: RangeNode, dot: Value): Jump {
    const value = this.pipe(node.pipe, dot, true)
    const [first, second] = node.pipe.variables
    let turns = 0
    const turn = (index: Value, item: Value): boolean => {
      turns++
      this.#budget.step(node.at)
      if (second) this.#slots[second.slot] = item
      if (first) this.#slots[first.slot] = second ? index : item
      return this.walk(node.body, item) !== 'break'
    }
    if (typeof value === 'number' && Number.isInteger(value)) {
      if (second) throw new TemplateError('type', 'a range over a number sets one variable only', node.at)
      for (let index = 0; index < value; index++) if (!turn(undefined, index)) break
    } else if (isList(value)) {
      for (const [index, item] of value.entries()) if (!turn(index, item)) break
    } else if (isJsonObject(value)) {
      for (const key of sortedKeys(value)) if (!turn(key, value[key])) break
    } else if (value !== undefined && value !== null) {
      throw new TemplateError('type', `cannot range over ${kindOf(value)}`, node.at)
    }
    return turns === 0 ? this.walk(node.otherwise, dot) : undefined
  }

  /** @param isRange the variables of a range are set by its turns */
  pipe(pipe: Pipe, dot: Value, isRange = false): Value {
    let value: Value
    for (const [index, command] of pipe.commands.entries()) value = this.#command(command, dot, index > 0 ? [value] : [])
    if (!isRange) for (const { slot } of pipe.variables) this.#slots[slot] = value
    return value
  }

  #command({ operands, at }: Command, dot: Value, input: readonly Value[]): Value {
    this.#budget.step(at)
    const [first, ...others] = operands
    if (first.kind !== 'function') return this.#operand(first, dot)
    return this.#call(first.name, others, { dot, input, at: first.at })
  }

  #call(name: FunctionName, operands: readonly Operand[], call: { dot: Value; input: readonly Value[]; at: number }): Value {
    const { dot, input, at } = call
    if (name !== 'and' && name !== 'or') {
      const values = operands.map((operand) => this.#operand(operand, dot))
      return FUNCTIONS[name]([...values, ...input], { budget: this.#budget, at })
    }
    let value: Value
    for (const operand of operands) {
      value = this.#operand(operand, dot)
      if (isTrue(value) === (name === 'or')) return value
    }
    return input.length > 0 ? input[0] : value
  }

  #operand(operand: Operand, dot: Value): Value {
    this.#budget.step(operand.at)
    switch (operand.kind) {
      case 'literal':
        return operand.value
      case 'dot':
        return fields(dot, operand.fields, operand.at)
      case 'variable':
        return fields(this.#slots[operand.slot], operand.fields, operand.at)
      case 'function':
        return this.#call(operand.name, [], { dot, input: [], at: operand.at })
      default: {
        const { head } = operand
        const value = head.kind === 'pipe' ? this.pipe(head, dot) : this.#call(head.name, [], { dot, input: [], at: head.at })
        return fields(value, operand.fields, operand.at)
      }
    }
  }
}

/** A member of nothing is nothing; a member of null, or of what is no object, is an error. */
function fields(value: Value, names: readonly string[], at: number): Value {
  let current = value
  for (const name of names) {
    if (current === undefined) return undefined
    if (!isJsonObject(current)) throw new TemplateError('type', `there is no member ${name} in ${kindOf(current)}`, at)
    current = memberOf(current, name)
  }
  return current
}

/** The path that a pipe consists of, for messages. */
export function pathText(pipe: Pipe): string | undefined {
  const [command, ...more] = pipe.commands
  if (!command || more.length > 0 || command.operands.length > 1) return undefined
  const [operand] = command.operands
  if (operand.kind === 'dot') return `.${operand.fields.join('.')}`
  return operand.kind === 'variable' ? [`$${operand.name}`, ...operand.fields].join('.') : undefined
}
