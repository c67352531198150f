import { dirname, isAbsolute, resolve } from 'node:path'
import type { Clock } from '@thv/kernel/clock'
import type { AuthSource, TlsSettings } from '../client/connection.ts'
import { execCredential } from './exec-credential.ts'
import { EXEC_API_VERSIONS, type ExecPlugin } from './exec-plugin.ts'
import type { Fields } from './kubeconfig-file.ts'

export interface ExecContext {
  readonly cluster: Fields
  readonly tls: TlsSettings
  readonly server: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether there is a terminal that the plugin may use. */
  readonly hasTerminal: boolean
  readonly clock: Clock | undefined
}

/** `users[].user.exec`, checked. The plugin is not run before it is needed. */
export function readExec(exec: Fields, context: ExecContext): AuthSource {
  const { env, hasTerminal, clock } = context
  const apiVersion = EXEC_API_VERSIONS.find((known) => known === exec.string('apiVersion'))
  if (apiVersion === undefined) throw exec.invalid('apiVersion', `must be ${EXEC_API_VERSIONS.join(' or ')}`)
  const command = exec.string('command')
  if (command === undefined) throw exec.invalid('command', 'is missing')
  const plugin: ExecPlugin = {
    apiVersion,
    command: placeOf(exec, command),
    args: exec.strings('args'),
    env: variablesOf(exec),
    installHint: exec.string('installHint'),
    ...(exec.boolean('provideClusterInfo') && { cluster: clusterInfo(context) }),
  }
  return execCredential({ plugin, env, interactive: isInteractive(exec, apiVersion, hasTerminal), clock })
}

/** A bare name is looked up in PATH; one with a slash is relative to the kubeconfig. */
function placeOf(exec: Fields, command: string): string {
  return isAbsolute(command) || !/[/\\]/.test(command) ? command : resolve(dirname(exec.file), command)
}

function variablesOf(exec: Fields): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const entry of exec.list('env')) {
    const name = entry.string('name')
    if (name === undefined) throw entry.invalid('name', 'is missing')
    variables[name] = entry.string('value') ?? ''
  }
  return variables
}

function isInteractive(exec: Fields, apiVersion: ExecPlugin['apiVersion'], hasTerminal: boolean): boolean {
  const mode = exec.string('interactiveMode') ?? (apiVersion.endsWith('/v1beta1') ? 'IfAvailable' : undefined)
  if (mode === 'Never') return false
  if (mode === 'IfAvailable') return hasTerminal
  if (mode !== 'Always') throw exec.invalid('interactiveMode', 'must be Never, IfAvailable or Always')
  if (!hasTerminal) throw exec.invalid('interactiveMode', 'is Always, but there is no terminal; log in by hand, or use another user')
  return true
}

/** The names of the ExecCredential's own schema. */
function clusterInfo({ cluster, tls, server }: ExecContext): Record<string, unknown> {
  const config = cluster.list('extensions').find((extension) => extension.string('name') === 'client.authentication.k8s.io/exec')
  return {
    server,
    ...(tls.serverName !== undefined && { 'tls-server-name': tls.serverName }),
    ...(tls.insecureSkipVerify && { 'insecure-skip-tls-verify': true }),
    ...(tls.ca !== undefined && { 'certificate-authority-data': Buffer.from(tls.ca, 'utf8').toString('base64') }),
    ...(config !== undefined && { config: config.value('extension') }),
  }
}
