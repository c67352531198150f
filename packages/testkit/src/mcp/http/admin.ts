import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ListKind } from '../state/changes.ts'
import type { World } from '../state/world.ts'
import type { EraSupport } from '../wire/protocol.ts'
import { refuse } from '../wire/refuse.ts'
import type { EdgeFaults, Failure } from './faults.ts'

/** Actions of a test on a running fixture behind the back of its clients. */
export interface FixtureAdmin {
  /** All legacy sessions are gone; the next request of each gets 404 (or `unknownSessionStatus`). Returns how many there were. */
  forgetSessions(): number
  /** Ends all open event streams; sessions stay. */
  dropStreams(): void
  /** Ends modern listen streams with a proper answer. */
  endListens(): void
  listChanged(list: ListKind): void
  resourceUpdated(uri: string): void
  /** The next requests to the MCP endpoint fail. */
  fail(failure: Failure): void
  /** As if the server had been replaced by one of another age. */
  setEra(era: EraSupport): void
}

export interface AdminParts {
  readonly faults: EdgeFaults
  forgetSessions(): number
  dropStreams(): void
}

export function createAdmin(world: World, parts: AdminParts): FixtureAdmin {
  return {
    forgetSessions: parts.forgetSessions,
    dropStreams: parts.dropStreams,
    endListens: () => world.endListens(),
    listChanged: (list) => world.changes.emit({ kind: 'list', list }),
    resourceUpdated: (uri) => world.changes.emit({ kind: 'resource', uri }),
    fail: (failure) => parts.faults.fail(failure),
    setEra: (era) => {
      world.era = era
    },
  }
}

/** The same over HTTP, for a fixture in a process of its own: `POST /admin/forget-sessions`, `GET /admin/stats` … */
export function handleAdmin(
  world: World,
  admin: FixtureAdmin,
  exchange: { request: IncomingMessage; response: ServerResponse; url: URL },
): void {
  const { request, response, url } = exchange
  const action = ACTIONS[`${request.method} ${url.pathname.slice('/admin/'.length)}`]
  if (!action) {
    refuse(response, { status: 404 })
    return
  }
  const outcome = action({ world, admin, query: url.searchParams }) ?? { done: true }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(outcome))
}

type Action = (parts: { world: World; admin: FixtureAdmin; query: URLSearchParams }) => unknown

const ACTIONS: Readonly<Record<string, Action>> = {
  'GET stats': ({ world }) => world.stats,
  'POST forget-sessions': ({ admin }) => ({ forgotten: admin.forgetSessions() }),
  'POST drop-streams': ({ admin }) => admin.dropStreams(),
  'POST end-listens': ({ admin }) => admin.endListens(),
  'POST list-changed': ({ admin, query }) => admin.listChanged((query.get('list') ?? 'tools') as ListKind),
  'POST resource-updated': ({ admin, query }) => admin.resourceUpdated(query.get('uri') ?? ''),
  'POST fail': ({ admin, query }) => admin.fail({ status: Number(query.get('status') ?? 503), times: Number(query.get('times') ?? 1) }),
  'POST era': ({ admin, query }) => admin.setEra((query.get('era') ?? 'dual') as EraSupport),
}
