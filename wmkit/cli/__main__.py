from wmkit.cli import main

main()
