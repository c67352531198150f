import type { FieldProblem } from '../kind-schema.ts'

/** One failed check: `text` tells equal failures apart, `problem` is what the client gets to see. */
export interface Failure {
  readonly text: string
  readonly problem: FieldProblem
}

/** `matches` counts passed checks: of several failed alternatives the real server reports the one that got furthest. */
export interface Outcome {
  readonly failures: readonly Failure[]
  readonly matches: number
}

export class OutcomeBuilder {
  readonly #failures = new Map<string, Failure>()
  #matches = 0

  add(failure: Failure): void {
    if (!this.#failures.has(failure.text)) this.#failures.set(failure.text, failure)
  }

  merge(outcome: Outcome | undefined): void {
    if (!outcome) return
    for (const failure of outcome.failures) this.add(failure)
    this.#matches += outcome.matches
  }

  count(): void {
    this.#matches += 1
  }

  get outcome(): Outcome {
    return { failures: [...this.#failures.values()], matches: this.#matches }
  }
}

export function failed(failure: Failure): Outcome {
  return { failures: [failure], matches: 0 }
}
