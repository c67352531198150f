import { createHash, timingSafeEqual } from 'node:crypto'

/** User that a bearer token stands for. */
export interface User {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
}

/** The tokens that are good. Compared by digest and all of them every time, so that time tells nothing about them. */
export class Tokens {
  readonly #known: { readonly digest: Buffer; readonly user: User }[] = []

  add(token: string, user: User): void {
    if (token.length < 16) throw new RangeError('a bearer token of less than 16 characters can be guessed')
    this.#known.push({ digest: digestOf(token), user })
  }

  userOf(token: string): User | undefined {
    const digest = digestOf(token)
    let found: User | undefined
    for (const known of this.#known) if (timingSafeEqual(known.digest, digest)) found = known.user
    return found
  }
}

/** Of an Authorization header; undefined for a missing or malformed one. */
export function bearerOf(authorization: string): string | undefined {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1]
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
