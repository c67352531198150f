import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { KubeApiError } from '@thv/kube/client/kube-api-error'
import { shownObject } from '../cluster/kind-catalog.ts'
import { serverMessage } from '../cluster/open-cluster.ts'
import type { ProgramEnv } from '../program.ts'
import type { ManifestObject, ManifestProblem } from './manifest-files.ts'

/** Notes what went wrong with single objects, so that the rest is still done; says at the end how many there were. */
export interface ObjectFailures {
  readonly count: number
  problem(problem: ManifestProblem): void
  /** Rethrows what concerns all objects: no server, no rights, Ctrl-C. */
  of(manifest: ManifestObject, error: unknown): void
  ofObject(what: string, error: unknown): void
  /** Throws `command_incomplete` when there were any. */
  finish(total: number, done: string): void
}

export function createObjectFailures(env: ProgramEnv): ObjectFailures {
  let count = 0
  const say = (lines: readonly string[]) => {
    count++
    for (const line of lines) env.err(`${line}\n`)
  }
  return {
    get count() {
      return count
    },
    problem: ({ file, line, message }) => say([`${file}:${line}: ${message}`]),
    of(manifest, error) {
      rethrowGeneral(error, env)
      say(manifestLines(manifest, error))
    },
    ofObject(what, error) {
      rethrowGeneral(error, env)
      say([`${what}: ${messageOf(error)}`])
    },
    finish(total, done) {
      if (count > 0) throw new ThvError('command_incomplete', `${count} of ${total} object${total === 1 ? ' was' : 's were'} not ${done}`)
    },
  }
}

function rethrowGeneral(error: unknown, env: ProgramEnv): void {
  if (env.signal?.aborted || isThvError(error, 'kube_unreachable') || isThvError(error, 'aborted')) throw error
  if (error instanceof KubeApiError && error.status === 401) throw error
  if (!isThvError(error)) throw error
}

/** Two parts of the server find fields that are not there, each in its own words. */
const UNKNOWN_FIELD = /unknown field "([^"]+)"|(?<=[\s:,])\.([^\s:,]+): field not declared in schema/g

/** One line for each wrong field, with its line in the file. */
function manifestLines(manifest: ManifestObject, error: unknown): string[] {
  const { file, line, object } = manifest
  const what = shownObject(object)
  const message = messageOf(error)
  const unknown = [...message.matchAll(UNKNOWN_FIELD)].map(([, strict, typed]) => strict ?? typed ?? '')
  if (unknown.length > 0) return unknown.map((field) => `${file}:${manifest.lineOf(field)}: ${what}: unknown field ${field}`)
  const isInvalid = error instanceof KubeApiError && error.status === 422
  // A cause without a field only says that the list may not be complete.
  const causes = isInvalid ? error.causes.filter(({ field, message }) => field && field !== '<nil>' && message) : []
  if (causes.length > 0)
    return causes.map(({ field = '', message = '' }) => `${file}:${manifest.lineOf(field)}: ${what}: ${field}: ${message}`)
  return [`${file}:${line}: ${what}: ${message}`]
}

function messageOf(error: unknown): string {
  if (!(error instanceof KubeApiError)) return errorMessage(error)
  const conflict = error.status === 409 && error.causes.some(({ reason }) => reason === 'FieldManagerConflict')
  return `${serverMessage(error).replace(/\s+/g, ' ')}${conflict ? ' (--force-conflicts takes over the fields)' : ''}`
}
