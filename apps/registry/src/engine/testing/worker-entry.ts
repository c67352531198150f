import { runEngineWorker } from '../engine-worker-main.ts'

await runEngineWorker()
