import type { AuthStore } from '@thv/store/auth/auth-store'
import { tokenRequest } from './token-request.ts'

/** The user of a family; kept beside its grant. */
export interface LoginRecord {
  readonly account: string
  readonly name?: string | undefined
  readonly email?: string | undefined
  /** Providers where the user logged in for this family. */
  readonly providers: readonly string[]
  /** Providers that a call of this family needed after their tokens had ended. Only another login helps: refreshes are refused. */
  readonly ended?: readonly string[] | undefined
}

/** Once for each request to the token endpoint. */
export async function loginOf(family: string, store: AuthStore): Promise<LoginRecord | undefined> {
  const request = tokenRequest()
  if (request?.login?.family === family) return request.login.record
  const record = (await store.get('login', family))?.value as LoginRecord | undefined
  if (request !== undefined) request.login = { family, record }
  return record
}
