#!/usr/bin/env node
import { runBundled } from '../../../scripts/bundle.mjs'

await runBundled('apps/operator/src/main.ts')
