/**
 * The parties whose calls were answered a short time ago. Only the last two are kept: any earlier one is over before they are, and to
 * tell whether anybody but one party is among them takes no more.
 */
export class RecentParties {
  #last: string | undefined
  #lastUntil = Number.NEGATIVE_INFINITY
  #before: string | undefined
  #beforeUntil = Number.NEGATIVE_INFINITY

  /** `until` never decreases from one call to the next. */
  add(party: string, until: number): void {
    if (party !== this.#last) {
      this.#before = this.#last
      this.#beforeUntil = this.#lastUntil
      this.#last = party
    }
    this.#lastUntil = until
  }

  hasOther(party: string, now: number): boolean {
    return (this.#last !== party && now < this.#lastUntil) || (this.#before !== party && now < this.#beforeUntil)
  }
}
