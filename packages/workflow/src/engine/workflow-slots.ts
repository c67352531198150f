export interface SlotLimits {
  /** 100 unless given. */
  readonly total?: number
  /** 10 unless given. */
  readonly perPrincipal?: number
}

/** How many workflows run at once in one process, and for one principal. */
export class WorkflowSlots {
  readonly #total: number
  readonly #perPrincipal: number
  readonly #held = new Map<string, number>()
  #count = 0

  constructor({ total = 100, perPrincipal = 10 }: SlotLimits = {}) {
    this.#total = total
    this.#perPrincipal = perPrincipal
  }

  get running(): number {
    return this.#count
  }

  /** A function that frees the slot, or undefined if there is none. */
  take(principal: string): (() => void) | undefined {
    const held = this.#held.get(principal) ?? 0
    if (this.#count >= this.#total || held >= this.#perPrincipal) return undefined
    this.#count++
    this.#held.set(principal, held + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#count--
      const left = (this.#held.get(principal) ?? 1) - 1
      if (left === 0) this.#held.delete(principal)
      else this.#held.set(principal, left)
    }
  }
}
