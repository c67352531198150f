import type { AttachedContainer, AttachOptions, ContainerTarget, PodStreams } from '../apiserver/kinds/pod/pod-streams.ts'
import { badRequest, StatusError } from '../apiserver/objects/status-error.ts'
import { logFolder, logParts } from './logs/log-folder.ts'
import type { StreamName } from './logs/log-line.ts'
import { readLog } from './logs/read-log.ts'
import type { ContainerLife } from './pod/container-life.ts'
import type { ContainerRun } from './pod/container-run.ts'
import type { PodLife } from './pod/pod-life.ts'

/** The logs and streams of the pods of one node. */
export function nodeStreams(folder: string, find: (uid: string) => PodLife | undefined): PodStreams {
  return {
    async logs(target, options) {
      const life = find(target.uid)?.container(target.container)
      const place = logFolder(folder, target.uid, target.container)
      const runs = [...new Set((await logParts(place)).map(({ run }) => run))]
      const latest = runs.at(-1)
      if (latest === undefined) throw notStarted(target, life)
      if (options.previous) {
        const previous = runs.at(-2)
        if (previous === undefined) throw badRequest(`previous terminated container "${target.container}" in pod "${target.pod}" not found`)
        return readLog({ folder: place, run: previous }, options)
      }
      const live = life?.current?.log
      return readLog({ folder: place, run: latest, ...(live?.run === latest && { live }) }, options)
    },

    async attach(target, options) {
      const life = find(target.uid)?.container(target.container)
      const run = life?.current
      if (life === undefined || run === undefined) throw notRunning(target)
      return attachTo(life, run, options)
    },
  }
}

function attachTo(life: ContainerLife, run: ContainerRun, options: AttachOptions): AttachedContainer {
  const wanted: StreamName[] = [...(options.stdout ? (['stdout'] as const) : []), ...(options.stderr ? (['stderr'] as const) : [])]
  const reader = run.output.attach(wanted)
  const isOnly = life.spec.stdinOnce === true && options.stdin && run.takeStdin()
  const stdin = options.stdin ? run.process.stdin : undefined
  let closed = false
  const endInput = () => {
    if (isOnly) stdin?.end()
  }
  const close = () => {
    if (closed) return
    closed = true
    options.signal.removeEventListener('abort', close)
    reader.leave()
    endInput()
  }
  options.signal.addEventListener('abort', close, { once: true })
  if (options.signal.aborted) close()
  return {
    output: reader,
    write: (bytes) =>
      new Promise((resolve) => {
        // A container without stdin, or one that has closed it, takes everything and reads nothing, as with a container runtime.
        if (stdin === undefined || !stdin.writable || closed) resolve()
        else stdin.write(bytes, () => resolve())
      }),
    endInput,
    close,
  }
}

function notStarted(target: ContainerTarget, life: ContainerLife | undefined): StatusError {
  const state = life?.record.state
  const reason = state && 'waiting' in state ? state.waiting.reason : 'ContainerCreating'
  const text = reason === 'ErrImagePull' || reason === 'ImagePullBackOff' ? `trying and failing to pull image` : reason
  return badRequest(`container "${target.container}" in pod "${target.pod}" is waiting to start: ${text}`)
}

function notRunning(target: ContainerTarget): StatusError {
  const message = `container ${target.container} not found in pod ${target.pod}_${target.namespace}: it does not run`
  return new StatusError({ code: 404, reason: 'NotFound', message })
}
