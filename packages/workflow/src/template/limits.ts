import { TemplateError } from './template-error.ts'

/** Bounds of one template and of one rendering. Sizes are bytes of UTF-8. */
export const TEMPLATE_LIMITS = {
  sourceBytes: 64 * 1024,
  depth: 100,
  steps: 100_000,
  outputBytes: 10 * 1024 * 1024,
  printfWidth: 1_000,
} as const

/** Levels of lists and objects that are written as JSON. */
const JSON_DEPTH = 1_000
/** Text that a function reads costs one step per this many characters. */
const CHARACTERS_PER_STEP = 1_024

/** The rest of what one rendering may use. Every use throws once nothing is. */
export class Budget {
  #steps: number = TEMPLATE_LIMITS.steps
  #output: number = TEMPLATE_LIMITS.outputBytes
  #values: number = TEMPLATE_LIMITS.outputBytes

  step(at: number): void {
    if (--this.#steps < 0) throw tooMuch(`more than ${TEMPLATE_LIMITS.steps.toLocaleString('en-US')} evaluation steps`, at)
  }

  /** A function looks at all of a text. */
  read(text: string, at: number): void {
    this.#steps -= Math.floor(text.length / CHARACTERS_PER_STEP)
    this.step(at)
  }

  /** Text of the result. */
  write(text: string, at: number): string {
    this.#output -= Buffer.byteLength(text)
    if (this.#output < 0) throw tooMuch('more than 10 MiB of output', at)
    return text
  }

  /** Text that a function made. */
  make(text: string, at: number): string {
    this.reserve(Buffer.byteLength(text), at)
    return text
  }

  /** Before a text of that size is made. */
  reserve(bytes: number, at: number): void {
    this.#values -= bytes
    if (this.#values < 0) throw tooMuch('its functions make more than 10 MiB of text', at)
  }

  depth(level: number, at: number): void {
    if (level > JSON_DEPTH) throw tooMuch(`a value is nested more than ${JSON_DEPTH.toLocaleString('en-US')} levels deep`, at)
  }
}

export function tooMuch(what: string, at: number): TemplateError {
  return new TemplateError('limit', `the template exceeds a limit: ${what}`, at)
}
