import type { BackendProblem } from '@thv/gateway/backend'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { KubeClient, KubeObject, Pod, ResourceType } from '@thv/kube'
import { createEventRecorder } from '@thv/kube/events/events'
import type { ProgramLog } from '@thv/programs/program-log'
import type { RunConfig } from '@thv/runconfig/run-config'
import { BACKEND_RECOVERED, RUNNER_CONTROLLER } from '@thv/runconfig/runner-events'
import { listeningPorts } from './pod-choice.ts'

export interface OwnerEventsOptions {
  readonly config: RunConfig
  readonly namespace: string
  /** Name of the runner's pod: Events of pods that are gone count for nothing. */
  readonly instance: string
  readonly client: Pick<KubeClient, 'create' | 'patch'>
  readonly pods: () => readonly Pod[]
  readonly clock: Clock
  readonly log: ProgramLog
}

export interface OwnerEvents {
  report(problem: BackendProblem | undefined): void
  flush(signal: AbortSignal): Promise<void>
}

/** Of one reason. */
const MIN_INTERVAL_MS = 60_000
/** While nothing changes: Events expire, one hour after the last write by default. */
const REPEAT_MS = 600_000

/**
 * Events on the MCPServer: each reason at most once a minute, and again after ten minutes while it lasts. Where the server really listens
 * is known a little later than that it does not listen where it should: the note with the ports does not wait for the minute.
 */
export function createOwnerEvents(options: OwnerEventsOptions): OwnerEvents {
  const { config, namespace, instance, client, clock, log } = options
  const recorder = createEventRecorder({
    client,
    controller: RUNNER_CONTROLLER,
    instance,
    clock,
    seriesIntervalMs: MIN_INTERVAL_MS,
    onError: (error) => log.warn('an event could not be recorded', { error: errorMessage(error) }),
  })
  const owner = ownerOf(config, namespace)
  const sentAt = new Map<string, number>()
  let last: { readonly reason: string; readonly note: string } | undefined

  function send(type: 'Normal' | 'Warning', reason: string, note: string, key = reason): void {
    if (owner === undefined) return
    const before = sentAt.get(key)
    const age = before === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - before
    const isSame = last?.reason === reason && last.note === note
    if (age < (isSame ? REPEAT_MS : MIN_INTERVAL_MS)) return
    sentAt.set(key, clock.monotonic())
    last = { reason, note }
    recorder.record(owner.type, owner.object, { type, reason, note, action: 'Serve' })
  }

  return {
    report(problem) {
      if (problem !== undefined) {
        const ports = listeningPorts(options.pods()).filter((port) => port !== config.target_port)
        send('Warning', problem.reason, noteOf(problem, ports), ports.length > 0 ? `${problem.reason} with ports` : problem.reason)
      } else if (last !== undefined && last.reason !== BACKEND_RECOVERED)
        send('Normal', BACKEND_RECOVERED, 'What kept the MCP server from working is over.')
    },
    flush: (signal) => recorder.flush(signal),
  }
}

/** The problem, and the field of the MCPServer to look at. */
function noteOf({ reason, message }: BackendProblem, listens: readonly number[]): string {
  if (reason === 'BackendPortClosed') {
    if (listens.length === 1) return `${message} It listens on port ${listens[0]}: set spec.mcpPort to ${listens[0]}.`
    if (listens.length > 1) return `${message} It listens on ports ${listens.join(', ')}: set spec.mcpPort to the one that serves MCP.`
    return `${message} Set spec.mcpPort to the port that it listens on; if it speaks MCP over standard input, set spec.transport to stdio.`
  }
  if (reason === 'BackendNotMcp') return `${message} Check spec.image, spec.args, spec.mcpPort and spec.transport.`
  if (reason === 'HandshakeTimedOut') return `${message} Check spec.transport, and the log of the server.`
  return message
}

function ownerOf({ owner }: RunConfig, namespace: string): { type: ResourceType; object: KubeObject } | undefined {
  if (owner === undefined) return undefined
  const [group = '', version = ''] = owner.api_version.split('/')
  const type: ResourceType = { group, version, kind: owner.kind, plural: `${owner.kind.toLowerCase()}s`, namespaced: true }
  return { type, object: { metadata: { namespace, name: owner.name, uid: owner.uid } } }
}
