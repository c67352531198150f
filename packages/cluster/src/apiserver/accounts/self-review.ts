import type { Clock } from '@thv/kernel/clock'
import { type ApiAnswer, timestamp } from '../http/request-context.ts'
import type { User } from '../http/tokens.ts'

/** POST …/selfsubjectreviews: whom the server takes the caller for. There is nothing in a request that could change the answer. */
export function reviewSelf({ name, uid, groups }: User, clock: Clock): ApiAnswer {
  const body = {
    kind: 'SelfSubjectReview',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { creationTimestamp: timestamp(clock) },
    status: { userInfo: { username: name, ...(uid === undefined ? {} : { uid }), groups } },
  }
  return { status: 201, text: JSON.stringify(body) }
}
