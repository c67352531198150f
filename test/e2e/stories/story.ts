import type { Service } from '@thv/kube'
import { postgresProblem } from '@thv/testkit/postgres/postgres-programs'
import { isCi } from '@thv/testkit/run/run-environment'
import { traefikAvailability } from '@thv/testkit/traefik/traefik-binary'
import type { ExpectStatic } from 'vitest'
import type { World } from './world.ts'

/**
 * Something that people do with the system and what they see, on a cluster with a running operator. It needs nothing but what is in
 * its context, so that the same file tells it on any cluster.
 */
export interface Story {
  readonly title: string
  /** Requirements that it shows to be met. */
  readonly proves: readonly string[]
  /** Features that only some clusters have; see `Need`. */
  readonly needs?: readonly Need[]
  /** Says so when other stories could not go on meanwhile. */
  readonly disturbsOthers?: boolean
  tell(world: World): Promise<void>
}

/**
 * `containers`: a file system, a user and rights of its own for each container. `gateway`: Traefik, which newer Go builds. `database`:
 * PostgreSQL on this machine.
 */
export type Need = 'containers' | 'gateway' | 'database'

export interface StoryContext {
  /** Of the test that tells the story: stories run at the same time, and each must make an assertion of its own. */
  readonly expect: ExpectStatic
  /** Of somebody who may do everything. */
  readonly kubeconfigPath: string
  /** Of this story only; pod security `restricted` is enforced in it. */
  readonly namespace: string
  readonly operator: { readonly namespace: string; readonly deployment: string }
  readonly images: {
    /** All programs of the project. */
    readonly apps: string
    /** The MCP fixture server, see packages/testkit/src/mcp. */
    readonly fixture: string
    /** The same under another name, for a change of image. */
    readonly sameFixture: string
  }
  /** Where a server of this process listens so that pods reach it. */
  readonly hostAddress: string
  /** Whether URLs in a status are made of the names of Services; else of what `reach` says. */
  readonly namesInUrls: boolean
  /** Whether the API server asks the operator's webhook. */
  readonly hasWebhook: boolean
  /** How clients outside the cluster reach a port of a Service: `host:port`. */
  reach(service: Service, port: number): string
}

export function titleOf({ title, proves }: Story): string {
  return [title, ...proves.map((id) => `[${id}]`)].join(' ')
}

/** Needs that this machine cannot meet, each with a loud line. In CI none: there the story itself fails with the reason. */
export function unmetNeeds(): readonly Need[] {
  if (isCi()) return []
  const { kind, reason } = traefikAvailability()
  const problems: readonly (readonly [Need, string | undefined])[] = [
    ['gateway', kind === 'unavailable' ? reason : undefined],
    ['database', postgresProblem()],
  ]
  return problems.flatMap(([need, problem]) => {
    if (problem === undefined) return []
    console.error(`\n!!! NO STORIES WITH A ${need.toUpperCase()}: ${problem} !!!\n`)
    return [need]
  })
}

export function canTell({ needs = [] }: Story, unmet: readonly Need[]): boolean {
  return !needs.some((need) => unmet.includes(need))
}
