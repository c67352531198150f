/** Why a step failed. The text may be shown to clients: it names no step and no backend. */
export class StepError extends Error {
  static {
    StepError.prototype.name = 'StepError'
  }

  /** Another try gives the same: a template, a type or a limit is wrong. */
  readonly isFinal: boolean

  constructor(message: string, options: { isFinal: boolean; cause?: unknown }) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.isFinal = options.isFinal
  }
}
