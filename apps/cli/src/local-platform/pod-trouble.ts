import type { ContainerStatus, Pod } from '@thv/kube/objects/builtin-kinds'
import { plainText } from '../text/plain-text.ts'

/** Reasons of a waiting container that do not pass by themselves soon. */
const TROUBLE = /BackOff|Err|Invalid|UnsafeBind|Error/

/** The problem of a pod, in one line. */
export function podTrouble(pod: Pod): string | undefined {
  const where = `pod ${pod.metadata.name}`
  if (pod.status?.phase === 'Failed')
    return `${where}: ${pod.status.reason ?? 'failed'}${pod.status.message ? `: ${plainText(pod.status.message)}` : ''}`
  for (const status of allStatuses(pod)) {
    const { waiting } = status.state ?? {}
    if (waiting?.reason === undefined || !TROUBLE.test(waiting.reason)) continue
    if (PULL.test(waiting.reason)) return `${where}: no image: ${pullMessage(waiting.message)}${adviceFor(waiting.message)}`
    const last = status.lastState?.terminated
    if (waiting.reason === 'CrashLoopBackOff' && last) {
      const said = last.message ? `: ${plainText(last.message)}` : ''
      return `${where}: CrashLoopBackOff: exit code ${last.exitCode}${said}; "thv logs pod/${pod.metadata.name}" shows why`
    }
    const ended = last ? ` (exit code ${last.exitCode}${last.message ? `: ${plainText(last.message)}` : ''})` : ''
    return `${where}: ${waiting.reason}${waiting.message ? `: ${plainText(waiting.message)}` : ''}${ended}${adviceFor(waiting.message)}`
  }
  return undefined
}

/** A pod goes to and fro between these two while it tries; to people it is one trouble, told once. */
const PULL = /^(ErrImagePull|ImagePullBackOff)$/

function pullMessage(message = ''): string {
  return plainText(
    message
      .replace(/^Back-off pulling image "[^"]*": /, '')
      .replace(/^ErrImagePull: /, '')
      .replace(/^image: /, ''),
  )
}

/** System error codes for an unreachable network. */
const NO_NETWORK = /\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ECONNRESET)\b/

function adviceFor(message = ''): string {
  const isNetwork = message.includes('could not be installed') && NO_NETWORK.test(message)
  return isNetwork ? '. The package registry cannot be reached; check the network, proxy and registry settings' : ''
}

/** Of all its containers, those that run first before the others. */
export function allStatuses({ status }: Pod): ContainerStatus[] {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
}
