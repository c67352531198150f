import { AsyncLocalStorage } from 'node:async_hooks'
import type { AuthRecordKind } from '@thv/store/auth/auth-store'
import type { LoginRecord } from './login-record.ts'

/** State that the records of one request to the token endpoint share. */
export interface TokenRequest {
  /** The code or refresh token that was looked up. */
  found: TokenRequest['presented']
  /** Presented by the client, and consumed together with the record that replaces it. */
  presented: { readonly kind: AuthRecordKind; readonly id: string; readonly family: string } | undefined
  /** Read once: after the last write nothing may fail. */
  login: { readonly family: string; readonly record: LoginRecord | undefined } | undefined
}

const requests = new AsyncLocalStorage<TokenRequest>()

/** Undefined outside the token endpoint. */
export function tokenRequest(): TokenRequest | undefined {
  return requests.getStore()
}

export async function withTokenRequest(work: (request: TokenRequest) => Promise<void>): Promise<void> {
  const request: TokenRequest = { found: undefined, presented: undefined, login: undefined }
  await requests.run(request, () => work(request))
}
