/** The suite over a real S3 server, too, which `npm run test:nightly` builds. */
import './archive-files.test.ts';
