/** Results for texts, the least recently used forgotten first. Long texts are compared by reference before anything else, so a lookup is cheap. */
export class RecentTexts<T> {
  readonly #maxChars: number
  readonly #results = new Map<string, T>()
  #chars = 0

  constructor(maxChars: number) {
    this.#maxChars = maxChars
  }

  get(text: string): T | undefined {
    const found = this.#results.get(text)
    if (found === undefined) return undefined
    this.#results.delete(text)
    this.#results.set(text, found)
    return found
  }

  set(text: string, result: T): void {
    if (!this.#results.delete(text)) this.#chars += text.length
    this.#results.set(text, result)
    for (const oldest of this.#results.keys()) {
      if (this.#chars <= this.#maxChars) return
      this.#results.delete(oldest)
      this.#chars -= oldest.length
    }
  }
}
