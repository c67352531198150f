// npm start: the platform on this machine with the quick start, until Ctrl-C. The same as "npx thv up"; words after "--" go to it.
import { runBundled } from './bundle.mjs'

process.argv.splice(2, 0, 'up')
await runBundled('apps/cli/src/main.ts')
