import type { Middleware } from '../pipeline/middleware.ts'
import { checkedHeader } from '../pipeline/outgoing-header.ts'
import { addCredentials } from './add-credentials.ts'

export interface HeaderInjectionOptions {
  readonly header: string
  /** A secret. */
  readonly value: string
}

/** Authenticates at the backend with one fixed header, on requests of clients and on our own. Throws InvalidOptions. */
export function createHeaderInjection({ header, value }: HeaderInjectionOptions): Middleware {
  const [name, checked] = checkedHeader(header, value)
  const headers = { [name]: checked }
  return {
    name: 'header-injection',
    prepare(hop) {
      addCredentials(hop, headers)
      return undefined
    },
  }
}
