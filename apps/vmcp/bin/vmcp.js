#!/usr/bin/env node
import { runBundled } from '../../../scripts/bundle.mjs'

await runBundled('apps/vmcp/src/main.ts')
