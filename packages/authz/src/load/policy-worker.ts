import { parentPort, workerData } from 'node:worker_threads'
import { type PolicySource, preparePolicies } from './prepare-policies.ts'

export interface PolicyWorkerData {
  readonly policies: PolicySource
}

/** The main module of a worker calls it. Answers once and ends: the engine's memory goes with the thread. */
export function runPolicyWorker(): void {
  const data = workerData as Partial<PolicyWorkerData> | null
  if (parentPort === null || data?.policies === undefined) throw new TypeError('this is no worker for policies')
  parentPort.postMessage(preparePolicies(data.policies))
}
