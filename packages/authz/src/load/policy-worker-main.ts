import { runPolicyWorker } from './policy-worker.ts'

runPolicyWorker()
