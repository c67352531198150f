/** A template that cannot be compiled or rendered. */
export class TemplateError extends Error {
  static {
    TemplateError.prototype.name = 'TemplateError'
  }

  /** `no_value`: a path without a value became text. `limit`: a bound of `limits.ts` was reached. */
  readonly kind: TemplateErrorKind
  /** Offset in the source, in UTF-16 units. */
  readonly at: number

  constructor(kind: TemplateErrorKind, message: string, at: number) {
    super(message)
    this.kind = kind
    this.at = at
  }
}

export type TemplateErrorKind = 'syntax' | 'type' | 'no_value' | 'limit'

/** `column 7`, or `line 2, column 7` if the source has several lines. Both count from 1. */
export function positionText(source: string, at: number): string {
  const before = source.slice(0, at)
  const column = at - (before.lastIndexOf('\n') + 1) + 1
  return source.includes('\n') ? `line ${before.split('\n').length}, column ${column}` : `column ${column}`
}
