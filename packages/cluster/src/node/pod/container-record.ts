/** Known state of one container; its status is made of it. */
export interface ContainerRecord {
  state: RecordState
  lastState: { terminated?: Terminated }
  ready: boolean
  started: boolean
  restartCount: number
  imageId: string
  containerId: string
  /** Ports that it listens on instead of those that its spec declares; undefined when that was never so. */
  otherPorts?: readonly number[]
}

export type RecordState = { waiting: Waiting } | { running: { startedAt: string } } | { terminated: Terminated }

export interface Waiting {
  readonly reason: string
  readonly message?: string
}

export interface Terminated {
  readonly exitCode: number
  readonly reason: string
  readonly message?: string
  readonly startedAt: string | null
  readonly finishedAt: string | null
  readonly containerID?: string
}

export function terminatedOf(state: RecordState): Terminated | undefined {
  return 'terminated' in state ? state.terminated : undefined
}

/** As the API writes times: whole seconds. */
export function secondTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}

interface StatusBefore {
  readonly restartCount?: number
  readonly imageID?: string
  readonly state?: { running?: { startedAt?: string }; terminated?: Terminated }
  readonly lastState?: { terminated?: Terminated }
  readonly containerID?: string
}

/**
 * Where a container begins. What an earlier node has seen of it goes on: one that ran when that node ended is taken up as its next run,
 * one that has ended and is `kept` so stays as it is.
 */
export function firstRecord(
  before: StatusBefore | undefined,
  waitingReason: string,
  kept: (end: Terminated) => boolean = () => false,
): ContainerRecord {
  const { state, lastState, restartCount = 0, containerID } = before ?? {}
  const unknown: Terminated | undefined = state?.running && {
    exitCode: 137,
    reason: 'ContainerStatusUnknown',
    message: 'The container was running when the node ended.',
    startedAt: state.running.startedAt ?? null,
    finishedAt: null,
    ...(containerID && { containerID }),
  }
  const common = { ready: false, started: false, imageId: before?.imageID ?? '' }
  if (state?.terminated && kept(state.terminated)) {
    return { ...common, state: { terminated: state.terminated }, lastState: lastState ?? {}, restartCount, containerId: containerID ?? '' }
  }
  const last = unknown ?? state?.terminated ?? lastState?.terminated
  return {
    ...common,
    state: { waiting: { reason: waitingReason } },
    lastState: last === undefined ? {} : { terminated: last },
    restartCount: last === undefined ? restartCount : restartCount + 1,
    containerId: '',
  }
}
