const MAX_NAMES = 10_000
const MAX_LENGTH = 256

/**
 * The tools that lists through this proxy have named, to any caller and before policies hide some: so that an audit event tells a denied
 * tool from one that does not exist. The server is not asked for it: a denied call must not cause requests.
 */
export class ListedTools {
  readonly #names = new Set<string>()

  note(name: string): void {
    if (this.#names.size < MAX_NAMES && name.length <= MAX_LENGTH) this.#names.add(name)
  }

  /** Undefined while no list has passed, and when there are too many tools to say that it is none of them. */
  has(name: string): boolean | undefined {
    if (this.#names.has(name)) return true
    return this.#names.size === 0 || this.#names.size >= MAX_NAMES || name.length > MAX_LENGTH ? undefined : false
  }

  /** The server has announced another list. */
  clear(): void {
    this.#names.clear()
  }
}
