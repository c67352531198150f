import { type Clock, systemClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { deployments, pods } from '@thv/kube/objects/resource-types'
import type { ResourceType } from '@thv/kube/objects/types'
import { SERVER_KINDS } from '../cluster/server-kinds.ts'
import { answers } from './answers.ts'
import type { ProgressView } from './progress-view.ts'
import { operatorState, type ServerResource, type ServerState, serverState } from './server-states.ts'

const OPERATOR = { namespace: 'toolhive-system', name: 'toolhive-operator' }
const NAME_LABEL = 'toolhive-name'
/** Fast enough to look alive, slow enough to cost nothing. */
const LOOK_MS = 150
/** After a look that did not reach the API server. */
const LOOK_AGAIN_MS = 1_000

export interface WaitOptions {
  readonly client: KubeClient
  readonly view: ProgressView
  /** When the user began to wait, by the monotonic clock. */
  readonly since: number
  readonly limitMs: number
  readonly clock?: Clock
  readonly signal: AbortSignal | undefined
  /** Other parts that must be ready, besides the servers. */
  readonly beside?: () => Promise<readonly ServerState[]>
}

/** A server that has failed this long, while nothing else is under way, does not recover by waiting. */
const GIVE_UP_MS = 15_000

/**
 * Looks until the operator is there and all servers answer, or those that do not are in trouble that stays, or the time is over. Returns
 * how it stands.
 */
export async function waitForServers(options: WaitOptions): Promise<ServerState[]> {
  const { client, view, since, limitMs, clock = systemClock, signal, beside } = options
  const deadline = clock.monotonic() + limitMs
  let stuckSince: number | undefined
  const known = createAnswers(signal)
  for (;;) {
    const looked = await Promise.all([readStates(client, signal), beside?.()]).catch((error: unknown) => {
      // A busy machine may stall the API server for longer than a connection waits for it.
      if (!isThvError(error, 'kube_unreachable') || clock.monotonic() > deadline) throw error
      return undefined
    })
    if (looked === undefined) {
      await clock.sleep(LOOK_AGAIN_MS, signal)
      continue
    }
    const [servers, others = []] = looked
    const states = [...servers.map((each) => known.confirmed(each)), ...others]
    view.show(states, clock.monotonic() - since)
    stuckSince = states.some(({ state }) => state !== 'ready' && state !== 'failing') ? undefined : (stuckSince ?? clock.monotonic())
    const isStuck = stuckSince !== undefined && clock.monotonic() - stuckSince > GIVE_UP_MS
    if (states.every(({ state }) => state === 'ready') || isStuck || clock.monotonic() > deadline) {
      view.end()
      return states
    }
    await clock.sleep(LOOK_MS, signal)
  }
}

/** Asks each server that calls itself ready, once until it answers. */
function createAnswers(signal: AbortSignal | undefined) {
  const answered = new Set<string>()
  const asking = new Set<string>()
  return {
    confirmed(state: ServerState): ServerState {
      const { url } = state
      if (url === undefined || answered.has(url)) return state
      if (!asking.has(url)) {
        asking.add(url)
        answers(url, signal)
          .then((isThere) => isThere && answered.add(url))
          .catch(() => undefined) // aborted: the look after it ends too
          .finally(() => asking.delete(url))
      }
      return { name: state.name, state: 'starting', detail: '(not responding yet)' }
    },
  }
}

/** The operator first, then all servers by name. */
export async function readStates(client: KubeClient, signal?: AbortSignal): Promise<ServerState[]> {
  const [operator, operatorPods, serverPods, ...lists] = await Promise.all([
    client.tryGet(deployments, OPERATOR, { signal }),
    client.list(pods, { namespace: OPERATOR.namespace, signal }),
    client.listAll(pods, { labelSelector: NAME_LABEL, signal }),
    ...SERVER_KINDS.map((kind) => client.listAll(kind as ResourceType<ServerResource>, { signal })),
  ])
  const servers = lists.flatMap(({ items }) => items)
  return [
    operatorState(operator, operatorPods.items),
    ...servers.map((server) => {
      const { namespace, name } = server.metadata
      const own = serverPods.items.filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[NAME_LABEL] === name)
      const state = serverState(server, own)
      return namespace === 'default' ? state : { ...state, name: `${namespace}/${name}` }
    }),
  ]
}
