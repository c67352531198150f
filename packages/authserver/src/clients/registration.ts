import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import { redirectKind } from './redirect-uri.ts'
import type { RegisteredClient, SealedClients } from './sealed-clients.ts'

export type RegistrationResult =
  | { readonly ok: true; readonly client: RegisteredClient }
  | { readonly ok: false; readonly error: 'invalid_redirect_uri' | 'invalid_client_metadata'; readonly description: string }

type RegistrationRules = Pick<
  AuthServerConfig,
  | 'scopes_supported'
  | 'baseline_client_scopes'
  | 'allow_confidential_client_registration'
  | 'insecure_allow_confidential_over_loopback_http'
  | 'force_confidential_redirect_uris'
>

const MAX_REDIRECT_URIS = 10
/** Together, because they are part of the client id. */
const MAX_REDIRECT_CHARS = 2_000
const MAX_NAME = 256
const GRANTS = ['authorization_code', 'refresh_token']

/** Judges the metadata of a registration (RFC 7591 §2). Unknown members are ignored, as the RFC demands. Pure. */
export function judgeRegistration(metadata: Readonly<Record<string, unknown>>, rules: RegistrationRules): RegistrationResult {
  const { redirect_uris: uris, client_name: name, software_id: software } = metadata
  if (!isTextList(uris) || uris.length < 1 || uris.length > MAX_REDIRECT_URIS)
    return badRedirect(`redirect_uris must be a list of 1 to ${MAX_REDIRECT_URIS} URIs`)
  if (uris.join('').length > MAX_REDIRECT_CHARS)
    return badRedirect(`redirect_uris must have at most ${MAX_REDIRECT_CHARS} characters together`)
  const kinds = uris.map(redirectKind)
  if (kinds.includes(undefined))
    return badRedirect(
      'a redirect URI must be https, http on 127.0.0.1, [::1] or localhost, or have a private-use scheme; without fragment, user name and wildcard',
    )
  if (name !== undefined && (typeof name !== 'string' || name.length > MAX_NAME || /[\p{Cc}\p{Cf}]/u.test(name)))
    return bad(`client_name must be a text of at most ${MAX_NAME} characters`)
  if (software !== undefined && (typeof software !== 'string' || !/^[\x20-\x7e]{1,256}$/.test(software)))
    return bad('software_id must be printable ASCII of at most 256 characters')

  const grants = metadata['grant_types'] ?? GRANTS
  if (!isTextList(grants) || !grants.includes('authorization_code') || grants.some((grant) => !GRANTS.includes(grant)))
    return bad('grant_types must be authorization_code, and refresh_token if wanted')
  const types = metadata['response_types'] ?? ['code']
  if (!isTextList(types) || types.length !== 1 || types[0] !== 'code') return bad('response_types must be code')
  const method = metadata['token_endpoint_auth_method'] ?? 'none'
  const problem = methodProblem(method, { uris, kinds }, rules)
  if (problem !== undefined) return bad(problem)
  const asked = metadata['scope']
  if (asked !== undefined && typeof asked !== 'string') return bad('scope must be a text')
  const scopes = asked === undefined || asked === '' ? [...rules.scopes_supported] : asked.split(' ')
  if (scopes.some((scope) => !rules.scopes_supported.includes(scope))) return bad('scope must list only scopes of scopes_supported')
  const scope = [...new Set([...scopes, ...rules.baseline_client_scopes])].join(' ')
  return {
    ok: true,
    client: {
      redirect_uris: uris,
      client_name: name,
      grant_types: GRANTS.filter((grant) => grants.includes(grant)),
      token_endpoint_auth_method: String(method),
      scope,
    },
  }
}

function methodProblem(
  method: unknown,
  { uris, kinds }: { uris: readonly string[]; kinds: readonly unknown[] },
  rules: RegistrationRules,
): string | undefined {
  const isForced = uris.some((uri) => rules.force_confidential_redirect_uris.includes(uri))
  if (method === 'none')
    return isForced ? 'a client with this redirect URI must have a secret: token_endpoint_auth_method must not be none' : undefined
  if (method !== 'client_secret_basic' && method !== 'client_secret_post') return 'token_endpoint_auth_method is not supported'
  if (!rules.allow_confidential_client_registration)
    return 'token_endpoint_auth_method must be none: clients with a secret cannot register here'
  const isSafe = kinds.every((kind) => kind === 'https' || (kind === 'loopback' && rules.insecure_allow_confidential_over_loopback_http))
  return isSafe ? undefined : 'a client with a secret may only have https redirect URIs'
}

/** The answer to an accepted registration (RFC 7591 §3.2.1). */
export function registrationAnswer(client: RegisteredClient, clients: SealedClients): Record<string, unknown> {
  const { clientId, issuedAt } = clients.seal(client)
  return {
    client_id: clientId,
    client_id_issued_at: issuedAt,
    ...(client.token_endpoint_auth_method !== 'none' && { client_secret: clients.secretOf(clientId), client_secret_expires_at: 0 }),
    ...client,
    response_types: ['code'],
  }
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function bad(description: string): RegistrationResult {
  return { ok: false, error: 'invalid_client_metadata', description }
}

function badRedirect(description: string): RegistrationResult {
  return { ok: false, error: 'invalid_redirect_uri', description }
}
