import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { programEnv } from '@thv/kernel/program-scope'
import { type AuthSource, basicAuth, bearerToken, type Connection, isTokenText, noAuth, type TlsSettings } from '../client/connection.ts'
import { vetServer } from '../client/server-url.ts'
import { type ExecContext, readExec } from './kubeconfig-exec.ts'
import { type Fields, type KubeconfigFile, readKubeconfigFile } from './kubeconfig-file.ts'
import { tokenFile } from './token-file.ts'

export interface KubeconfigOptions {
  /** One file; instead of KUBECONFIG and the default. */
  path?: string
  /** Instead of `current-context`. */
  context?: string
  env?: Readonly<Record<string, string | undefined>>
  home?: string
  clock?: Clock
  /** Whether a credential plugin may use our terminal. Default: whether there is one. */
  hasTerminal?: boolean
}

/**
 * Finds, joins and checks kubeconfig files and returns the connection of one context. All that is wrong with them is a
 * `kubeconfig_invalid` that names file and field, and never holds a secret.
 */
export async function loadKubeconfig(options: KubeconfigOptions = {}): Promise<Connection> {
  const paths = candidatePaths(options)
  const files = (await Promise.all(paths.map(readKubeconfigFile))).filter((file) => file !== undefined)
  if (files.length === 0) throw new ThvError('kubeconfig_invalid', `kubeconfig ${paths.join(', ')}: file: does not exist`)

  const context = chooseContext(files, options.context)
  const cluster = referenced(files, 'clusters', { fields: context, field: 'cluster' })
  if (cluster === undefined) throw context.invalid('cluster', 'is missing')
  const user = referenced(files, 'users', { fields: context, field: 'user' })
  const namespace = context.string('namespace')

  const server = serverOf(cluster)
  const tls = { ...(await clusterTls(cluster)), ...(user && (await clientCertificate(user))) }
  const { clock, env = programEnv(), hasTerminal = process.stdin.isTTY === true } = options
  const auth = user ? authOf(user, { cluster, tls, server, env, hasTerminal, clock }) : noAuth
  return { server, tls, auth, ...(namespace && { namespace }) }
}

/** Files that do not exist are passed over when they come from a list, as kubectl does. */
function candidatePaths({ path, env = programEnv(), home = homedir() }: KubeconfigOptions): string[] {
  if (path) return [path]
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((entry) => entry !== '')
  return listed.length > 0 ? [...new Set(listed)] : [join(home, '.kube', 'config')]
}

/** The first file that has a name wins, and so does the first that has a current context. */
function find(files: readonly KubeconfigFile[], kind: 'clusters' | 'users' | 'contexts', name: string): Fields | undefined {
  return files.find((file) => file[kind].has(name))?.[kind].get(name)
}

function chooseContext(files: readonly KubeconfigFile[], wanted: string | undefined): Fields {
  const where = files.map((file) => file.path).join(', ')
  const name = wanted || files.find((file) => file.currentContext !== undefined)?.currentContext
  if (name === undefined)
    throw new ThvError('kubeconfig_invalid', `kubeconfig ${where}: current-context: is not set and no context was named`)
  const context = find(files, 'contexts', name)
  if (context) return context
  const known = [...new Set(files.flatMap((file) => [...file.contexts.keys()]))].slice(0, 10).join(', ') || 'none'
  throw new ThvError('kubeconfig_invalid', `kubeconfig ${where}: contexts: there is no ${JSON.stringify(name)} (there is: ${known})`)
}

function referenced(
  files: readonly KubeconfigFile[],
  kind: 'clusters' | 'users',
  by: { fields: Fields; field: string },
): Fields | undefined {
  const name = by.fields.string(by.field)
  if (name === undefined) return undefined
  const found = find(files, kind, name)
  if (found === undefined) throw by.fields.invalid(by.field, `there is no ${JSON.stringify(name)} in ${kind}`)
  return found
}

function serverOf(cluster: Fields): string {
  const server = cluster.string('server')
  if (server === undefined) throw cluster.invalid('server', 'is missing')
  if (cluster.has('proxy-url')) throw cluster.invalid('proxy-url', 'is not supported; use an address that is reachable directly')
  try {
    vetServer(server)
  } catch (error) {
    throw cluster.invalid('server', errorMessage(error))
  }
  return server
}

async function clusterTls(cluster: Fields): Promise<TlsSettings> {
  const ca = await pem(cluster, 'certificate-authority')
  if (ca !== undefined) attempt(cluster, 'certificate-authority', () => parseCertificates(ca))
  const serverName = cluster.string('tls-server-name')
  const insecureSkipVerify = cluster.boolean('insecure-skip-tls-verify')
  if (insecureSkipVerify && ca !== undefined)
    throw cluster.invalid('insecure-skip-tls-verify', 'contradicts the certificate authority beside it')
  return { ...(ca && { ca }), ...(serverName && { serverName }), ...(insecureSkipVerify && { insecureSkipVerify }) }
}

async function clientCertificate(user: Fields): Promise<TlsSettings> {
  const cert = await pem(user, 'client-certificate')
  const key = await pem(user, 'client-key')
  if (cert !== undefined && key === undefined) throw user.invalid('client-key', 'is missing beside client-certificate')
  if (key !== undefined && cert === undefined) throw user.invalid('client-certificate', 'is missing beside client-key')
  if (cert === undefined || key === undefined) return {}
  attempt(user, 'client-certificate', () => createSecureContext({ cert, key }))
  return { cert, key }
}

/** The text of `NAME-data` (base64), or else of the file that `NAME` points to. */
async function pem(fields: Fields, name: string): Promise<string | undefined> {
  const data = fields.string(`${name}-data`)
  const path = fields.path(name)
  if (data === undefined && path === undefined) return undefined
  const field = data === undefined ? name : `${name}-data`
  const text = data === undefined ? await readPem(fields, name, path ?? '') : decodeBase64(fields, field, data)
  if (!text.includes('-----BEGIN ')) throw fields.invalid(field, 'does not hold PEM')
  return text
}

async function readPem(fields: Fields, name: string, path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((cause: unknown) => {
    throw fields.invalid(name, `${path} cannot be read`, cause)
  })
}

function decodeBase64(fields: Fields, field: string, data: string): string {
  const compact = data.replace(/\s+/g, '')
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(compact)) throw fields.invalid(field, 'is not base64')
  return Buffer.from(compact, 'base64').toString('utf8')
}

/** OpenSSL passes over a CA that it cannot parse in silence, and then no server is trusted. */
function parseCertificates(pemText: string): void {
  const blocks = pemText.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [pemText]
  for (const block of blocks) new X509Certificate(block)
}

/** Problems of certificates are found now, by name, and not as a handshake that fails. Only the code of OpenSSL's error is kept. */
function attempt(fields: Fields, field: string, check: () => void): void {
  try {
    check()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw fields.invalid(field, `certificate or key cannot be used (${code})`)
  }
}

/** Settings that this client cannot honor, so that it would act as another user. */
const UNSUPPORTED: readonly (readonly [field: string, instead: string])[] = [
  ['auth-provider', 'use a token, tokenFile or client certificate (kubectl create token NAME prints one)'],
  ['as', 'use credentials of the account itself'],
  ['as-uid', 'use credentials of the account itself'],
  ['as-groups', 'use credentials of the account itself'],
  ['as-user-extra', 'use credentials of the account itself'],
]

function authOf(user: Fields, context: ExecContext): AuthSource {
  const { clock } = context
  for (const [field, instead] of UNSUPPORTED) {
    if (user.has(field)) throw user.invalid(field, `is not supported yet; ${instead}`)
  }
  const token = user.string('token')
  const path = user.path('tokenFile')
  const username = user.string('username')
  const password = user.string('password')
  const hasToken = token !== undefined || path !== undefined
  const exec = user.fields('exec')
  if (exec !== undefined) {
    const other = ['token', 'tokenFile', 'username', 'client-certificate', 'client-certificate-data'].find((name) => user.has(name))
    if (other !== undefined) throw user.invalid(other, 'stands beside exec; keep one of them')
    return readExec(exec, context)
  }
  if (hasToken && (username ?? password) !== undefined) throw user.invalid('username', 'stands beside a token; keep one of them')
  if (username === undefined && password !== undefined) throw user.invalid('username', 'is missing beside password')
  if (token !== undefined && !isTokenText(token)) throw user.invalid('token', 'holds characters that no token has')
  // With both, the file is the newer one: the token beside it is what it held once.
  if (path !== undefined) return tokenFile({ path, errorCode: 'kubeconfig_invalid', clock })
  if (token !== undefined) return bearerToken(token)
  return username === undefined ? noAuth : basicAuth(username, password ?? '')
}
