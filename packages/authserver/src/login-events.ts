import { AsyncLocalStorage } from 'node:async_hooks'

/** An event of the authorization server, for audit. Holds no token, code, state or verifier. */
export interface LoginEvent {
  readonly type:
    | 'auth_login'
    | 'auth_consent'
    | 'auth_registration'
    /** A client that gave a wrong secret, or is none. */
    | 'auth_client'
    | 'auth_token_issue'
    | 'auth_token_refresh'
    | 'auth_token_exchange'
    | 'auth_token_reuse'
    | 'auth_revocation'
    | 'auth_upstream_refresh'
  readonly outcome: 'success' | 'denied' | 'failure'
  /** `sub` of tokens. */
  readonly account?: string | undefined
  /** Name of the client, where it has one. */
  readonly client?: string | undefined
  /** Upstream provider. */
  readonly provider?: string | undefined
  readonly reason?: string | undefined
  /** Of the client; undefined for what no request caused. */
  readonly address?: string | undefined
}

export type LoginListener = (event: LoginEvent) => void

const addresses = new AsyncLocalStorage<string>()

/** Events reach all listeners, with the address of the request that caused them. */
export class LoginEvents {
  readonly #listeners = new Set<LoginListener>()

  /** Listeners must not throw. */
  observe(listener: LoginListener): void {
    this.#listeners.add(listener)
  }

  report(event: LoginEvent): void {
    if (this.#listeners.size === 0) return
    const address = addresses.getStore()
    for (const listener of this.#listeners) listener({ ...event, ...(address !== undefined && { address }) })
  }

  /** Of what `work` reports. */
  async from<T>(address: string, work: () => Promise<T>): Promise<T> {
    return this.#listeners.size === 0 ? await work() : await addresses.run(address, work)
  }
}
