import { arityProblem, isFunctionName } from './function-names.ts'
import { type Token, type TokenKind, tokens } from './lexer.ts'
import { TEMPLATE_LIMITS, tooMuch } from './limits.ts'
import { numberLiteral, runeLiteral, stringLiteral } from './literals.ts'
import type { BranchNode, ChainOperand, Command, FunctionOperand, Node, Operand, Pipe, RangeNode, Variable } from './nodes.ts'
import { checkConstantFormat } from './printf.ts'
import { TemplateError } from './template-error.ts'

export interface Syntax {
  readonly nodes: readonly Node[]
  /** Number of variables, `$` included. */
  readonly slots: number
}

/** Parses a template by the grammar of Go's text/template, without `define`, `template`, `block` and `call`. */
export function parse(source: string): Syntax {
  if (Buffer.byteLength(source) > TEMPLATE_LIMITS.sourceBytes) throw tooMuch('more than 64 KiB of source', 0)
  return new Parser(tokens(source)).template()
}

type Context = 'if' | 'with' | 'range' | 'action' | 'parenthesis'
type Stop = 'end' | 'else' | 'eof'
const UNSUPPORTED: ReadonlySet<string> = new Set(['define', 'template', 'block', 'call'])
const OPERANDS: ReadonlySet<TokenKind> = new Set(['word', 'dot', 'field', 'variable', 'number', 'rune', 'string', 'raw', 'leftParen'])

class Parser {
  readonly #tokens: readonly Token[]
  #next = 0
  #depth = 0
  #loops = 0
  #slots = 1
  /** Variables in scope, the innermost last. */
  readonly #scope: Variable[] = [{ name: '', slot: 0 }]

  constructor(all: readonly Token[]) {
    this.#tokens = all
  }

  template(): Syntax {
    const { nodes, stop, at } = this.#list()
    if (stop !== 'eof') throw fault(`unexpected {{${stop}}}`, at)
    return { nodes, slots: this.#slots }
  }

  #list(): { nodes: Node[]; stop: Stop; at: number } {
    const nodes: Node[] = []
    for (;;) {
      const token = this.#take()
      if (token.kind === 'end') return { nodes, stop: 'eof', at: token.at }
      if (token.kind === 'text') {
        nodes.push({ kind: 'text', text: token.text, at: token.at })
        continue
      }
      const stop = this.#action(nodes, token.at)
      if (stop) return { nodes, stop, at: token.at }
    }
  }

  /** The part after `{{`. `end` and `else` end the list; `else` leaves a following `if` or `with` to the caller. */
  #action(nodes: Node[], open: number): Stop | undefined {
    const first = this.#peekNonSpace()
    if (first.kind === 'word') {
      if (UNSUPPORTED.has(first.text)) throw fault(`${first.text} is not supported`, first.at)
      switch (first.text) {
        case 'if':
        case 'with':
        case 'range':
          this.#takeNonSpace()
          nodes.push(this.#control(first.text, open))
          return undefined
        case 'break':
        case 'continue':
          this.#takeNonSpace()
          this.#expectClose(first.text)
          if (this.#loops === 0) throw fault(`{{${first.text}}} outside of {{range}}`, first.at)
          nodes.push({ kind: first.text, at: open })
          return undefined
        case 'end':
          this.#takeNonSpace()
          this.#expectClose('end')
          return 'end'
        case 'else': {
          this.#takeNonSpace()
          const following = this.#peekNonSpace()
          if (following.kind !== 'word' || (following.text !== 'if' && following.text !== 'with')) this.#expectClose('else')
          return 'else'
        }
      }
    }
    nodes.push({ kind: 'action', pipe: this.#pipe('action', open), at: open })
    return undefined
  }

  #control(kind: 'if' | 'with' | 'range', open: number): BranchNode | RangeNode {
    this.#enter(open)
    const scope = this.#scope.length
    const pipe = this.#pipe(kind, open)
    if (kind === 'range') this.#loops++
    const body = this.#list()
    if (kind === 'range') this.#loops--
    let otherwise: readonly Node[] = []
    if (body.stop === 'eof') throw fault(`{{${kind}}} has no {{end}}`, open)
    if (body.stop === 'else') otherwise = this.#otherwise(kind, open)
    this.#scope.length = scope
    this.#depth--
    return { kind, pipe, body: body.nodes, otherwise, at: open }
  }

  #otherwise(kind: 'if' | 'with' | 'range', open: number): readonly Node[] {
    const following = this.#peekNonSpace()
    if (following.kind === 'word' && (following.text === 'if' || following.text === 'with')) {
      if (following.text !== kind) throw fault(`unexpected {{else ${following.text}}} in {{${kind}}}`, following.at)
      this.#takeNonSpace()
      return [this.#control(following.text, following.at)]
    }
    const { nodes, stop, at } = this.#list()
    if (stop === 'else') throw fault('expected {{end}}, found {{else}}', at)
    if (stop === 'eof') throw fault(`{{${kind}}} has no {{end}}`, open)
    return nodes
  }

  #pipe(context: Context, start: number): Pipe {
    const end = context === 'parenthesis' ? 'rightParen' : 'close'
    const { names, assigns } = this.#declarations(context)
    const commands: Command[] = []
    for (;;) {
      const token = this.#peekNonSpace()
      if (token.kind === end) {
        this.#takeNonSpace()
        break
      }
      if (!OPERANDS.has(token.kind)) throw unexpected(token)
      commands.push(this.#command(commands.length > 0))
    }
    if (commands.length === 0) throw fault(context === 'action' ? 'the action is empty' : `a value is missing`, start)
    // Only now: in `$x := print $x` the last one is an outer variable.
    const variables = names.map((name) => (assigns ? this.#variable(name) : this.#declare(name)))
    return { kind: 'pipe', variables, assigns, commands, at: start }
  }

  /** `$x :=`, `$x =`, and in a range `$i, $x :=`. */
  #declarations(context: Context): { names: Token[]; assigns: boolean } {
    const names: Token[] = []
    const start = this.#next
    for (;;) {
      const token = this.#peekNonSpace()
      if (token.kind !== 'variable') {
        if (names.length > 0 && token.kind !== 'close' && token.kind !== 'rightParen')
          throw fault('a range can only set variables', token.at)
        break
      }
      this.#takeNonSpace()
      const following = this.#peekNonSpace()
      if (following.kind === 'declare' || following.kind === 'assign') {
        this.#takeNonSpace()
        names.push(token)
        return { names, assigns: following.kind === 'assign' }
      }
      if (following.kind !== 'comma') break
      names.push(token)
      if (context !== 'range' || names.length > 1) throw fault('too many variables', token.at)
      this.#takeNonSpace()
    }
    if (names.length > 0) throw fault('expected := after the variables', names[0]?.at ?? 0)
    this.#next = start
    return { names: [], assigns: false }
  }

  #declare(token: Token): Variable {
    const variable = { name: token.text.slice(1), slot: this.#slots++ }
    this.#scope.push(variable)
    return variable
  }

  #variable(token: Token): Variable {
    const variable = this.#scope.findLast(({ name }) => name === token.text.slice(1))
    if (!variable) throw fault(`undefined variable ${token.text}`, token.at)
    return variable
  }

  /** Operands up to a pipe sign, which is taken, or the end of the pipe, which is left. */
  #command(hasInput: boolean): Command {
    const at = this.#peekNonSpace().at
    const operands: Operand[] = []
    for (;;) {
      this.#skipSpace()
      const operand = this.#operand()
      if (operand) operands.push(operand)
      const token = this.#peek()
      if (token.kind === 'space') continue
      if (token.kind === 'pipe') this.#take()
      else if (token.kind !== 'close' && token.kind !== 'rightParen') throw unexpected(token)
      break
    }
    const [first, ...others] = operands
    if (!first) throw fault('the command is empty', at)
    this.#checkCommand(first, others, hasInput)
    return { operands: [first, ...others], at }
  }

  /** Whether the first operand can take the others, and the value of the command before it. */
  #checkCommand(first: Operand, others: readonly Operand[], hasInput: boolean): void {
    const count = others.length + (hasInput ? 1 : 0)
    for (const operand of others) this.#checkOperand(operand)
    if (first.kind === 'function') {
      const problem = arityProblem(first.name, count)
      if (problem) throw fault(problem, first.at)
      const [format] = others
      if (first.name === 'printf' && format?.kind === 'literal') checkConstantFormat(format.value, format.at)
      return
    }
    if (count > 0) throw fault('only a function takes arguments', first.at)
    if (first.kind === 'literal' && first.value === null) throw fault('nil is not a command', first.at)
    this.#checkOperand(first)
  }

  /** A function as an operand is called without arguments. */
  #checkOperand(operand: Operand): void {
    const called = operand.kind === 'chain' ? operand.head : operand
    const problem = called.kind === 'function' && arityProblem(called.name, 0)
    if (problem) throw fault(problem, operand.at)
  }

  #operand(): Operand | undefined {
    const term = this.#term()
    if (!term) return undefined
    const fields: string[] = []
    while (this.#peek().kind === 'field') fields.push(this.#take().text.slice(1))
    if (fields.length === 0) return term.kind === 'pipe' ? { kind: 'chain', head: term, fields, at: term.at } : term
    switch (term.kind) {
      case 'literal':
        throw fault('unexpected . after a literal', term.at)
      case 'dot':
        if (term.fields.length === 0) throw fault('unexpected . after .', term.at)
        return { ...term, fields: [...term.fields, ...fields] }
      case 'variable':
        return { ...term, fields: [...term.fields, ...fields] }
      default:
        return { kind: 'chain', head: term, fields, at: term.at }
    }
  }

  #term(): Exclude<Operand, ChainOperand> | Pipe | undefined {
    const token = this.#peek()
    if (!OPERANDS.has(token.kind)) return undefined
    this.#take()
    const { at, text } = token
    switch (token.kind) {
      case 'word':
        return wordOperand(token)
      case 'dot':
        return { kind: 'dot', fields: [], at }
      case 'field':
        return { kind: 'dot', fields: [text.slice(1)], at }
      case 'variable':
        return { kind: 'variable', ...this.#variable(token), fields: [], at }
      case 'number':
        return { kind: 'literal', value: numberLiteral(text, at), at }
      case 'rune':
        return { kind: 'literal', value: runeLiteral(text, at), at }
      case 'leftParen': {
        this.#enter(at)
        const pipe = this.#pipe('parenthesis', at)
        this.#depth--
        return pipe
      }
      default:
        return { kind: 'literal', value: stringLiteral(text, at), at }
    }
  }

  #enter(at: number): void {
    if (++this.#depth > TEMPLATE_LIMITS.depth) throw tooMuch(`nested more than ${TEMPLATE_LIMITS.depth} levels deep`, at)
  }

  #expectClose(what: string): void {
    const token = this.#takeNonSpace()
    if (token.kind !== 'close') throw fault(`unexpected ${JSON.stringify(token.text)} after ${what}`, token.at)
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? END
  }

  #take(): Token {
    const token = this.#peek()
    this.#next++
    return token
  }

  #skipSpace(): void {
    while (this.#peek().kind === 'space') this.#next++
  }

  #peekNonSpace(): Token {
    this.#skipSpace()
    return this.#peek()
  }

  #takeNonSpace(): Token {
    this.#skipSpace()
    return this.#take()
  }
}

const END: Token = { kind: 'end', text: '', at: 0 }
const KEYWORDS: ReadonlySet<string> = new Set(['if', 'else', 'end', 'range', 'with', 'break', 'continue'])

function wordOperand({ text, at }: Token): FunctionOperand | Exclude<Operand, ChainOperand> {
  if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true', at }
  if (text === 'nil') return { kind: 'literal', value: null, at }
  if (isFunctionName(text)) return { kind: 'function', name: text, at }
  if (KEYWORDS.has(text)) throw fault(`unexpected ${text}`, at)
  if (UNSUPPORTED.has(text)) throw fault(`${text} is not supported`, at)
  throw fault(`there is no function ${JSON.stringify(text)}`, at)
}

function unexpected(token: Token): TemplateError {
  return fault(token.kind === 'end' ? 'unexpected end of the template' : `unexpected ${JSON.stringify(token.text)}`, token.at)
}

function fault(message: string, at: number): TemplateError {
  return new TemplateError('syntax', message, at)
}
