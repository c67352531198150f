import type { ServerResponse } from 'node:http'

export interface Failure {
  readonly status: number
  /** How many requests fail. */
  readonly times: number
  readonly headers?: Record<string, string>
}

/** Faults of the HTTP edge, whatever is asked. */
export interface EdgeFaults {
  fail(failure: Failure): void
  /** True: the request has been answered with the fault. */
  apply(response: ServerResponse): boolean
}

export function createEdgeFaults(): EdgeFaults {
  let left = 0
  let current: Failure = { status: 503, times: 0 }
  return {
    fail: (failure) => {
      current = failure
      left = failure.times
    },
    apply: (response) => {
      if (left <= 0) return false
      left -= 1
      response.writeHead(current.status, current.headers).end()
      return true
    },
  }
}
