import { positionText, TemplateError } from '../template/template.ts'

/** `cycle`, `template` and `schema` have reasons of their own in the status of a definition. */
export type WorkflowProblemCode = 'cycle' | 'template' | 'schema' | 'value'

export interface WorkflowProblem {
  readonly code: WorkflowProblemCode
  /** Id of the step, where there is one. */
  readonly step?: string
  /** Path of the field, such as `spec.steps[1].arguments.code`. */
  readonly field: string
  /** The whole sentence: field, step, column and what is wrong. The same in `validate`, in a rejection and in a status. */
  readonly message: string
}

/** Where in the definition something stands. */
export interface Site {
  readonly field: string
  readonly step?: string
}

/** More would fill a status without helping its reader. */
const MAX_PROBLEMS = 50
/** Names and patterns in a message are the author's, of any length; a status takes 32 KiB. */
const MAX_MESSAGE_LENGTH = 1_000

/** Collects problems. The first fifty are kept. */
export class Problems {
  readonly all: WorkflowProblem[] = []

  add(code: WorkflowProblemCode, site: Site, text: string): void {
    this.addWhole(code, site, `${site.field}${site.step === undefined ? '' : ` (step ${site.step})`}: ${text}`)
  }

  /** A problem in a template, at an offset of its source. */
  addAt(site: Site, template: { readonly source: string; readonly at: number }, text: string): void {
    this.add('template', site, `${positionText(template.source, template.at)}: ${text}`)
  }

  addTemplateError(site: Site, source: string, error: unknown): void {
    if (!(error instanceof TemplateError)) throw error
    this.addAt(site, { source, at: error.at }, error.message)
  }

  /** A sentence that names the field itself. */
  addWhole(code: WorkflowProblemCode, site: Site, message: string): void {
    const text = message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH).toWellFormed()}…` : message
    if (this.all.length < MAX_PROBLEMS) this.all.push({ code, ...site, message: text })
  }
}
