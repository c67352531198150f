import { errorMessage } from '@thv/kernel/errors'
import { KubeApiError } from '@thv/kube'

/** Message of the server itself, without the name of the call: for conditions and events, which people compare with kubectl's. */
export function serverMessage(error: unknown): string {
  if (!(error instanceof KubeApiError)) return errorMessage(error)
  const { verb, target, status, reason } = error.details
  const head = `${verb} ${target}: `
  const tail = ` (${[status, reason].filter(Boolean).join(' ')})`
  const { message } = error
  return message.startsWith(head) && message.endsWith(tail) ? message.slice(head.length, -tail.length) : message
}

/** Nothing can be created any more: no reason to try, or to complain. */
export function isNamespaceTerminating(error: unknown): boolean {
  return error instanceof KubeApiError && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
}
