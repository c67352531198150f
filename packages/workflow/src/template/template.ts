import type { JsonObject } from '@thv/kernel/json'
import { evaluateAction, renderText } from './evaluate.ts'
import type { Pipe } from './nodes.ts'
import { parse, type Syntax } from './parser.ts'
import type { Value } from './value.ts'

export { TEMPLATE_LIMITS } from './limits.ts'
export { positionText, TemplateError } from './template-error.ts'
export type { Value } from './value.ts'

/** A template that was parsed once and can be rendered any number of times. */
export interface Template {
  readonly source: string
  readonly syntax: Syntax
  /** The pipe, if the whole template is one action: then its value keeps its type. */
  readonly action: Pipe | undefined
  /** The text, if there is nothing to fill in. */
  readonly constant: string | undefined
}

/** @throws TemplateError if the text is no template, or larger or deeper than allowed */
export function compileTemplate(source: string): Template {
  const syntax = parse(source)
  const [only, ...others] = syntax.nodes
  const isAction = only?.kind === 'action' && others.length === 0 && only.pipe.variables.length === 0
  const text = only === undefined ? '' : only.kind === 'text' && others.length === 0 ? only.text : undefined
  return {
    source,
    syntax,
    action: isAction ? only.pipe : undefined,
    constant: text,
  }
}

/** Text. @throws TemplateError */
export function render(template: Template, root: JsonObject): string {
  return template.constant ?? renderText(template.syntax, root)
}

/** The value of a template that is one action, undefined if it has none; the text of any other. @throws TemplateError */
export function evaluate(template: Template, root: JsonObject): Value {
  if (template.constant !== undefined) return template.constant
  return template.action ? evaluateAction(template.syntax, template.action, root) : renderText(template.syntax, root)
}
